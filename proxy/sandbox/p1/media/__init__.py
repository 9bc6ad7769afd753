"""The image service and the transcription service of the simulated P1: checks, answers and faults."""
