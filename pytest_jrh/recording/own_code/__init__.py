"""What a judge's own code asks over HTTP: recorded, and answered on replay (rule Q4)."""
