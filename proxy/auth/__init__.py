"""Sign-in and credentials, for any provider.

    store.py     the credential and its file: load, atomic save, delete
    lock.py      one process at a time
    refresh.py   `Credentials`: a usable token for each request, renewed once for all that wait
    static_token.py  a token that the user has set, in place of a sign-in
    http.py      `TokenClient` and `TokenResponse`: requests to an issuer
    pkce.py  callback.py  browser.py    browser sign-in
    device.py    device-code sign-in
    discovery.py the issuer's endpoints
    grant.py     makes a credential from a token response
    jwt.py       claims of a token, unverified
    text.py      makes foreign text fit for an error message or a terminal

What belongs to one provider (addresses, client id, claim names) is in that provider's `signin.py`.
Nothing here reads the environment, prints, or knows where the configuration lives.
"""
