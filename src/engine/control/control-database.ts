/** Tenants, hashed keys and per-tenant settings: the one file that all tenants share. */

/** The id of the tenant that every data folder has. */
export const DEFAULT_TENANT = 'default';

export type Role = 'read' | 'write' | 'admin';

export interface TenantRecord {
  readonly id: string;
  readonly createdAt: number;
}

export interface KeyRecord {
  readonly id: string;
  readonly tenantId: string;
  readonly role: Role;
  readonly label: string;
  readonly createdAt: number;
  readonly revokedAt: number | null;
}

export interface Principal {
  readonly tenantId: string;
  readonly role: Role;
  /** 'environment' for OM_API_KEY, 'anonymous' where no key is configured or for public reads. */
  readonly keyId: string;
}

/** Implemented by `openControlDatabase`. */
export interface ControlDatabase {
  /** The default tenant always exists. */
  listTenants(): TenantRecord[];
  /** The tenant's file, or undefined for an unknown tenant. */
  findTenantPath(tenantId: string): string | undefined;
  /** `tenantId`: 1..64 of a-z, 0-9, - and _, starting with a letter or digit. Throws `invalid`, `conflict`. */
  createTenant(tenantId: string): TenantRecord;
  /** Forgets the tenant and its keys and removes its files. Throws `not_found`; `invalid` for the default tenant. */
  eraseTenant(tenantId: string): void;

  /** The secret is returned once and stored only as a hash. Throws `not_found` for an unknown tenant. */
  createKey(key: { readonly tenantId: string; readonly role: Role; readonly label?: string }): {
    readonly record: KeyRecord;
    readonly secret: string;
  };
  listKeys(tenantId?: string): KeyRecord[];
  /** Throws `not_found`. Every process notices within a second. */
  revokeKey(keyId: string): void;

  /** True if a request without a key may be served as the default tenant's admin: no key is configured anywhere. */
  isOpen(): boolean;
  /** Who holds this key; undefined for an unknown, revoked or malformed one. Digests are compared in constant time. */
  authenticate(secret: string): Principal | undefined;

  getSetting(tenantId: string, name: string): string | undefined;
  putSetting(tenantId: string, name: string, value: string): void;
  close(): void;
}
