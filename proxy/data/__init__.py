"""Files that ship with the package: the o200k_base vocabulary (MIT licensed, from tiktoken), gzip-compressed."""
