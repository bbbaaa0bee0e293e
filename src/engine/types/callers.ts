/** Who asks: the roles and bounds of keys and tokens, and the callers that they identify. */

/** The roles of keys; the type `Role` says what each may do. */
export const ROLES = ['read', 'add', 'write', 'admin'] as const;
/**
 * What a key may do in its tenant: `read` may query and read; `add` may add memories and documents and read its own
 * jobs, and nothing else; `write` may do all of this, and change and delete; `admin` may also change settings and
 * manage jobs, embedding models and providers.
 */
export type Role = (typeof ROLES)[number];

/** The memories and documents that a caller may reach. A field that is left out sets no bound. */
export interface Bounds {
  /** The only user whose memories and documents are reached. */
  readonly userId?: string | undefined;
  /** Tags that every memory and document must carry; never empty. */
  readonly tags?: readonly string[] | undefined;
}

/** The caller of a request: its tenant, its role there, and the bounds of what it may reach. */
export interface Principal extends Bounds {
  readonly tenantId: string;
  readonly role: Role;
  /**
   * Id of the key. It is 'environment' for OM_API_KEY; 'anonymous' if no key is configured, and for public reads;
   * 'metrics' for whoever may only read metrics; for a token of OM_OIDC_ISSUER it is `oidc:` and 16 hexadecimal digits,
   * a hash of its issuer and subject.
   */
  readonly keyId: string;
}

/** The caller that a key or token identifies, before the request has chosen one of its tenants. */
export interface Holder extends Principal {
  /** Tenants that the holder may choose from; `tenantId` is the first. */
  readonly tenantIds: readonly string[];
  /**
   * Whether a request must name its tenant: the first one of the key was erased or has moved away, and what was meant
   * for it must not come to the next one. Left out for others.
   */
  readonly mustNameTenant?: true;
  /** Time from which the key or token is refused, Unix ms; null if it never expires. */
  readonly expiresAt: number | null;
}

/** The caller of a request. */
export interface Caller {
  readonly holder: Holder;
  /** Secret of the browser session by which the caller came; undefined if it came with a key, a token or neither. */
  readonly session: string | undefined;
}
