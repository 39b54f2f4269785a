"""An OpenAI-compatible server that answers the demo's requests with answers written by hand."""

from examples.scripted_model.script import NotScriptedError, Script, load_script
from examples.scripted_model.server import ScriptedModel

__all__ = ["NotScriptedError", "Script", "ScriptedModel", "load_script"]
