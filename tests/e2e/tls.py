"""A certificate authority of its own for each test: server and client certificates as PEM files."""

import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Authority:
    def __init__(self, folder, name="test authority"):
        self.folder = folder
        self.name = name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self.sign(name, self.key.public_key(), self.key, authority=True)
        self.path = self.write(f"{name}.ca", self.certificate.public_bytes(serialization.Encoding.PEM))

    def write(self, name, data):
        path = self.folder / f"{name.replace(' ', '-')}.pem"
        path.write_bytes(data)
        path.chmod(0o600)
        return path

    def sign(self, name, public_key, key, authority=False, host=None):
        now = datetime.datetime.now(datetime.timezone.utc)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = subject if authority else self.certificate.subject
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key)
                   .serial_number(x509.random_serial_number())
                   .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
                   .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True))
        if host is not None:
            names = [x509.DNSName(host)] if not host[0].isdigit() else [x509.IPAddress(ipaddress.ip_address(host))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if not authority:
            usage = [ExtendedKeyUsageOID.SERVER_AUTH if host else ExtendedKeyUsageOID.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        return builder.sign(key, hashes.SHA256())

    def issue(self, name, host=None):
        """Paths of certificate and key: a server's with `host`, else a client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.sign(name, key.public_key(), self.key, host=host)
        return (self.write(f"{name}.cert", certificate.public_bytes(serialization.Encoding.PEM)),
                self.write(f"{name}.key", key.private_bytes(serialization.Encoding.PEM,
                                                            serialization.PrivateFormat.PKCS8,
                                                            serialization.NoEncryption())))

    def context(self, certificate=None, key=None):
        context = ssl.create_default_context(cafile=str(self.path))
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return context
