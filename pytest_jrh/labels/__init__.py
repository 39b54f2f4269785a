"""Labels that people or programs gave: their files, what they say, and the runs they are of (rule
N1).
"""
