"""One module a direction. A request converter is a function named after it; a stream reducer is a class."""
