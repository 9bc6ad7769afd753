"""The shared parts of the providers' accounts: ways to sign in, the stored credential, the printed usage.

    account.py          what a user can do with an account, and its context
    token_endpoint.py   the issuer's token endpoint, for one public OAuth client
    browser_sign_in.py  authorization code with PKCE, through a browser on this machine
    device_sign_in.py   device code (RFC 8628), confirmed in any browser
    stored.py           an account with a credential, which it stores, shows and deletes
    usage_report.py     asks for the usage, and prints it

A provider's `account/signin.py` has its addresses, client id and claims, and in what its issuer differs.
"""
