/** Directives that the content security policies of all pages of this server share. */
const SHARED_POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'connect-src': "'self'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
} as const;

/**
 * Returns the headers of an HTML page, in addition to the headers of every reply (security-headers.ts). The page may
 * load from this server alone, may not be framed by another site, and may use no camera, microphone or other device.
 * @param policy further directives of the page's content security policy; they replace shared directives of the same
 *   name
 */
export function pageHeaders(policy: Readonly<Record<`${string}-${string}`, string>>): Map<string, string> {
  const directives = Object.entries({ ...SHARED_POLICY, ...policy }).map(([name, sources]) => `${name} ${sources}`);
  return new Map([
    ['content-security-policy', directives.join('; ')],
    ['permissions-policy', 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ]);
}
