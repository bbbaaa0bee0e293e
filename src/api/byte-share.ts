/**
 * Sum of the bytes that requests in one state hold: in total, and for each API key that holds any, or for each tenant
 * where `ofKey` is used with ids of tenants.
 */
export interface ByteShare {
  readonly ofKey: Map<string, number>;
  total: number;
}

/** Adds bytes to the share of a key (or tenant) and to the total; a negative number takes them off. */
export function addTo(share: ByteShare, key: string, bytes: number): void {
  const own = (share.ofKey.get(key) ?? 0) + bytes;
  if (own === 0) share.ofKey.delete(key);
  else share.ofKey.set(key, own);
  share.total += bytes;
}

/** The API key of a request, and the tenant to which it came. A key of several tenants has one share in all of them. */
export interface Owner {
  readonly keyId: string;
  readonly tenantId: string;
}

/** Bytes that requests in one state hold, for each API key, for each tenant, and in total. */
export class OwnedBytes {
  readonly #ofKeys: ByteShare = { ofKey: new Map(), total: 0 };
  readonly #ofTenants: ByteShare = { ofKey: new Map(), total: 0 };

  get total(): number {
    return this.#ofKeys.total;
  }

  /** Returns the bytes that a key holds in all its tenants, and those that a tenant's keys hold there. */
  of({ keyId, tenantId }: Owner): { readonly key: number; readonly tenant: number } {
    return { key: this.#ofKeys.ofKey.get(keyId) ?? 0, tenant: this.#ofTenants.ofKey.get(tenantId) ?? 0 };
  }

  /** Adds bytes to the shares of a key and a tenant and to the total; a negative number takes them off. */
  add({ keyId, tenantId }: Owner, bytes: number): void {
    addTo(this.#ofKeys, keyId, bytes);
    addTo(this.#ofTenants, tenantId, bytes);
  }
}
