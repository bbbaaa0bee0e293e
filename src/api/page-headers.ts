/** Directives of the content security policy that every page of this server shares. */
const SHARED_POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'connect-src': "'self'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
} as const;

/**
 * Headers of a page for a browser, besides those of every reply (security-headers.ts): it loads from this server alone,
 * no other site may frame it, and it may use no device.
 * @param policy the directives of its content security policy besides those that all pages share
 */
export function pageHeaders(policy: Readonly<Record<`${string}-${string}`, string>>): Map<string, string> {
  const directives = Object.entries({ ...SHARED_POLICY, ...policy }).map(([name, sources]) => `${name} ${sources}`);
  return new Map([
    ['content-security-policy', directives.join('; ')],
    ['permissions-policy', 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()'],
  ]);
}
