"""What counts as a credential, kind by kind, and what only looks like one."""

import base64

import pytest

from odek.trust.secrets import contains_secret, find_secrets, mask


def hexadecimal(size: int) -> str:
    """Return digits of no meaning."""
    return ("9f3a7c1e5b2d8046" * 16)[:size]


def base62(size: int) -> str:
    """Return letters and digits of no meaning."""
    return ("aB3xK9mQ7rT2wL5z" * 20)[:size]


BASE64 = base64.b64encode(bytes(range(64))).decode()
RSA = "RSA PRIVATE" + " KEY-----"
SSH2 = "SSH2 ENCRYPTED PRIVATE" + " KEY ----"


# Put together here, so that no scanner of sources takes them for real ones.
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("eyJhbGciOiJub25lIn0" + ".eyJzdWIiOiIxIn0.", "jwt"),
        ("eyJhIjoxfQ" + ".eyJiIjoyfQ.c2lnbmF0dXJlMTIzNDU2Nzg", "jwt"),
        (f"  -----BEGIN {RSA}\n  MHcCAQEEIBx\n  -----END {RSA}", "private-key"),
        (f"MIIEpAIBAAKCAQEA{base62(48)}\n{base62(64)}\n{base62(64)}", "private-key"),
        (f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE{base62(34)}\n{base62(70)}", "private-key"),
        (f"mongodb+srv://admin:{base62(12)}@cluster0.example.net/test", "url-password"),
        (f"mysql://root:{base62(4)}%40{base62(4)}@db/x", "url-password"),
        (f"https://{hexadecimal(40)}@git.example/r.git", "url-token"),
        (f"dckr_pat_{base62(27)}", "docker-token"),
        (f"{hexadecimal(32)}-us14", "mailchimp-key"),
        (f"AKIA{'Q7RT2XW4' * 2},{base62(40)}", "aws-secret"),
        (f"aws_session_token=IQoJb3JpZ2luX2VjE{base62(300)}", "assigned-secret"),
        (f"AccountKey={BASE64};EndpointSuffix=x", "azure-key"),
        (f"Endpoint=sb://x;SharedAccessKey={base62(43)}=", "assigned-secret"),
        ("DB_PASS=tr0ub4dor&3", "assigned-secret"),
        ("mysql -u root --password hunt3r2xy", "option-secret"),
        (f"tool --api-key {base62(24)}", "option-secret"),
        ("sshpass -p hunt3r2xyz ssh x", "option-secret"),
        ("docker login -u me -p hunt3r2xyz registry.example", "option-secret"),
        ("<password>hunt3r2xyz</password>", "element-secret"),
        ('{\\"password\\": \\"hunt3r2xyz\\"}', "assigned-secret"),
        ('password="Tr0ub,4d(or"', "assigned-secret"),
        ("password: P4$$w0rd!x", "assigned-secret"),
        (f"ENCRYPTION_KEY={base62(32)}", "assigned-secret"),
        (f"SECRET_KEY_BASE={hexadecimal(128)}", "assigned-secret"),
        (f"user:$apr1$abcdefgh${base62(22)}", "password-hash"),
        (f"root:$6$saltsalt${base62(86)}:19000:0:99999:7:::", "password-hash"),
        (f"X-Api-Key: {hexadecimal(32)}", "assigned-secret"),
        (f"Set-Cookie: session={base62(32)}; Path=/; HttpOnly", "cookie"),
        (f"sk-or-v1-{hexadecimal(64)}", "openai-key"),
        (f"sk-ant-oat01-{base62(60)}", "anthropic-key"),
        (f"123456789:AA{base62(33)}", "telegram-token"),
        ("api_key = 123e4567-e89b-12d3-a456-426614174000", "assigned-secret"),
        ("PGPASSWORD=hunt3r2xyz psql", "assigned-secret"),
        (f"tgp_v1_{base62(43)}", "together-key"),
        (f"squ_{hexadecimal(40)}", "sonar-token"),
        (f"sb_secret_{base62(31)}", "supabase-token"),
        (f"redis-cli -a {base62(16)} ping", "option-secret"),
        (f"ldapsearch -D cn=x -w {base62(14)}", "option-secret"),
        (f"rocommunity {base62(14)}", "snmp-community"),
        (f'{{"kty":"RSA","n":"{base62(80)}","d":"{base62(86)}"}}', "jwk"),
        (f"db pass: {base62(12)}", "assigned-secret"),
        (f"jina_{base62(60)}", "jina-key"),
        (f"key_{hexadecimal(64)}", "cursor-key"),
        (f"AC{hexadecimal(32)}:{hexadecimal(32)}", "twilio-token"),
        (f"Authorization: SSWS 00{base62(40)}", "authorization"),
        (f"client-key-data: {base62(200)}", "cluster-key"),
        (f"_auth={base62(28)}", "npm-auth"),
        (f"AAAA{base62(7)}:APA91b{base62(134)}", "firebase-key"),
        (f'{{"username":"x","key":"{hexadecimal(32)}"}}', "kaggle-key"),
        (f"curl -b 'session={base62(40)}' https://x", "curl-cookie"),
        (f"define('AUTH_KEY', '{base62(64)}');", "assigned-secret"),
        (f"password%3D{base62(14)}%26user%3Dbob", "assigned-secret"),
        (f'psk="{base62(16)}"', "assigned-secret"),
        ("The password for staging is Xk9Qz7Lm2P.", "told-secret"),
        (f"my api key is {base62(32)}", "told-secret"),
        (f"use token {base62(40)} to log in", "told-secret"),
        (
            f"---- BEGIN {SSH2}\n{base62(70)}\n---- END {SSH2}",
            "private-key",
        ),
        (
            f"-----BEGIN OpenVPN Static key V1-----\n{hexadecimal(32)}\n-----END OpenVPN Static key V1-----",
            "private-key",
        ),
    ],
)
def test_a_credential_of_each_kind_is_known(text: str, kind: str) -> None:
    """It is found in a line of other text too, and its kind is named."""
    assert kind in {span.kind for span in find_secrets(text)}
    assert contains_secret(f"note\n{text}\nend")
    assert f"[REDACTED:{kind}]" in mask(f"note\n{text}\nend")


@pytest.mark.parametrize(
    "text",
    [
        "token_type: Bearer",
        "password_field = forms.CharField(max_length=128)",
        "secretName: db-creds-v2",
        "password: ${DB_PASSWORD}",
        'password="{{ vault.db_pw1 }}"',
        'f"postgres://{user}:{password}@{host}/db1"',
        "postgres://postgres:postgres@localhost:5432/app1",
        "postgres://$USER:$PASS1@host/db",
        "token = request.headers['X-Token-2']",
        "api_key=os.getenv('API_KEY_2')",
        "export TOKEN=$(cat /run/secrets/token1)",
        f"sha256:{hexadecimal(64)}",
        f"integrity sha512-{BASE64}",
        f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC{base62(200)}",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBg\n-----END CERTIFICATE-----",
        "usage: --token TOKEN  the API token",
        "--password PASSWORD",
        "commit 1f3d5b7a9c: fix token refresh (#1234)",
        "arn:aws:iam::123456789012:role/service-role/my-role1",
        "pwd=/home/user/project1/src",
        "OLDPWD=/home/user/p1",
        "TOKEN_URL=https://auth.example.com/oauth2/token",
        "secret_id: projects/123/secrets/my-secret",
        "s3://bucket/key-0123456789abcdef0123456789abcdef-suffix",
        "password=%(password1)s",
        "curl -u $USER:$TOKEN1 https://x",
        '"token": "string(64)"',
        "private_key_path=/etc/ssl/private/server1.key",
        "jwt: eyJ... (truncated)",
        f"The file starts with -----BEGIN {RSA} and ends with its counterpart.",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "The password for staging is in Vault under staging-db2",
        "The password is sha256-hashed.",
        "The token is valid for 15 minutes.",
        "use token authentication for the API",
        "PrivateKey = ",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    """Names, references, paths, hashes, public keys and usage texts are not touched."""
    assert mask(text) == text
    assert not contains_secret(text)


@pytest.mark.parametrize(
    "disguised",
    [
        "ghp_" + base62(20) + "\n" + base62(20),
        "\u0261" + "hp_" + base62(40),
        base64.b64encode(b"ghp_" + base62(40).encode()).decode(),
        ("ghp_" + base62(40)).encode().hex(),
        ("ghp_" + base62(40))[::-1],
        "ghp_" + base62(20) + "\u200b" + base62(20),
    ],
)
def test_a_thin_disguise_is_masked_where_it_stands(disguised: str) -> None:
    """What is masked is the disguised credential, and what stands around it stays."""
    assert mask(f"one {disguised} two") == "one [REDACTED:github-token] two"
