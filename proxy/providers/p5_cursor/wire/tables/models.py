"""The list of models."""

TABLE = """\
GetUsableModelsRequest = 1 custom_model_ids string[]
GetUsableModelsResponse = 1 models ModelDetails[]
"""
