/**
 * Computes the SHA-256 of the concatenated parts, as hexadecimal digits; undefined if the browser does not offer
 * SHA-256, as on pages of plain HTTP that are not of localhost.
 */
export async function sha256(...parts: readonly (string | Uint8Array<ArrayBuffer>)[]): Promise<string | undefined> {
  const { subtle } = crypto as { readonly subtle?: SubtleCrypto };
  if (subtle === undefined) return undefined;
  const digest = await subtle.digest('SHA-256', await new Blob([...parts]).arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Reads bytes from hexadecimal digits, two for each byte; an odd last digit is ignored. */
export function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
