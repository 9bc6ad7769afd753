"""The image service and the transcription service of the simulated P1: what they demand, answer and suffer."""
