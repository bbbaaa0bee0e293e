/**
 * The types of the control database, which holds tenants, hashed keys and settings of each tenant. All tenants share
 * it.
 */

/** The id of the tenant that every data folder has. */
export const DEFAULT_TENANT = 'default';

/**
 * What a key may do in its tenant: `read` queries and reads; `write` also adds, changes and deletes memories; `admin`
 * may also change settings and manage jobs, embedding models and providers.
 */
export type Role = 'read' | 'write' | 'admin';

export interface TenantRecord {
  readonly id: string;
  /** Time the tenant was created, Unix ms. */
  readonly createdAt: number;
}

/** A key without its secret. */
export interface KeyRecord {
  /** Public part of the key, 16 hexadecimal digits. */
  readonly id: string;
  readonly tenantId: string;
  readonly role: Role;
  /** Name that a person gave the key; '' for none. */
  readonly label: string;
  /** Time the key was created, Unix ms. */
  readonly createdAt: number;
  /** Time the key was revoked, Unix ms; null for a valid key. */
  readonly revokedAt: number | null;
}

/** The tenant and the role in whose name a request is made. */
export interface Principal {
  readonly tenantId: string;
  readonly role: Role;
  /** Id of the key; 'environment' for OM_API_KEY; 'anonymous' if no key is configured, and for public reads. */
  readonly keyId: string;
}

/** Tenants, keys and settings, as `openControlDatabase` opens them. */
export interface ControlDatabase {
  /** Lists all tenants, oldest first; the default tenant always exists. */
  listTenants(): TenantRecord[];
  /** Returns the path of the tenant's database file, which need not exist yet; undefined for an unknown tenant. */
  findTenantPath(tenantId: string): string | undefined;
  /**
   * Creates a tenant, but not its file.
   * @param tenantId 1 to 64 characters of a-z, 0-9, - and _, starting with a letter or digit
   * @throws EngineError `invalid`; `conflict` if the tenant or a file of its name exists
   */
  createTenant(tenantId: string): TenantRecord;
  /** Deletes the tenant, its keys, settings and files. Throws `not_found`; `invalid` for the default tenant. */
  eraseTenant(tenantId: string): void;

  /** Creates a key. Its secret is returned once and stored only as a hash. Throws `not_found` for an unknown tenant. */
  createKey(key: { readonly tenantId: string; readonly role: Role; readonly label?: string }): {
    readonly record: KeyRecord;
    readonly secret: string;
  };
  /** Lists the keys of a tenant, or of all tenants by default, oldest first and with the revoked ones. */
  listKeys(tenantId?: string): KeyRecord[];
  /**
   * Revokes a key; every process notices within a second. To revoke a revoked key changes nothing. Throws `not_found`.
   * @param keyId the id of the key, not its secret
   */
  revokeKey(keyId: string): void;

  /**
   * True if a request without a key may be served as the default tenant's admin: OM_API_KEY is not set, and this
   * process has never seen a valid key of any tenant. Revoking the last key opens nothing before a restart.
   */
  isOpen(): boolean;
  /**
   * Returns the holder of a key by its whole secret; undefined for an unknown, revoked or malformed key. The holder of
   * OM_API_KEY is the default tenant's admin. Digests are compared in constant time.
   */
  authenticate(secret: string): Principal | undefined;

  /** Returns a tenant's setting; undefined if it was never stored or the tenant is unknown. */
  getSetting(tenantId: string, name: string): string | undefined;
  /** Stores a tenant's setting in place of an earlier value. Throws `not_found` for an unknown tenant. */
  putSetting(tenantId: string, name: string, value: string): void;
  close(): void;
}
