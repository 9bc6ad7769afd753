"""What a request is: how it is admitted, who may answer it, where it is reported. Nothing here knows who serves it."""
