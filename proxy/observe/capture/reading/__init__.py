"""What is in the folder of captures: found, compared and cleared away. Nothing here follows a link."""
