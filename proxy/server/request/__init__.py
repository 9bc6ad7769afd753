"""What a request is: how it is admitted, who may answer it, and who is told of it. Nothing here knows who serves it."""
