import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { Disposables } from "../../src/lib/disposables.ts";

/** What servers of Redis need to speak TLS, among each other too, and the file of the certificate that clients have to trust. */
export type RedisTls = { settings: string[]; certificate: string };

/** A key and a certificate of this machine, made by openssl, that end with `disposables`. */
export async function makeRedisTls(disposables: Disposables): Promise<RedisTls> {
  const folder = await mkdtemp(join(tmpdir(), "switchyard-tls-"));
  disposables.add(() => rm(folder, { recursive: true, force: true }));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", key, "-out", certificate];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const made = spawnSync("openssl", [...args, ...names]);
  if (made.status !== 0) throw new Error(`openssl: ${made.error ?? made.stderr}`);
  const files = [`tls-cert-file ${certificate}`, `tls-key-file ${key}`, `tls-ca-cert-file ${certificate}`];
  return { settings: ["tls-auth-clients no", "tls-replication yes", ...files], certificate };
}

/** Lets this process trust a certificate, as `NODE_EXTRA_CA_CERTS` does for one that starts, until `disposables` end. */
export async function trust({ certificate }: RedisTls, disposables: Disposables): Promise<void> {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, await readFile(certificate, "utf8")]);
  disposables.add(async () => setDefaultCACertificates(before));
}
