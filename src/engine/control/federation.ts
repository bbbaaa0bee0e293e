/** The types of the servers that questions may be sent to. */

/** Bounds of registered servers: those of one tenant, and the characters of a name, a key and a tenant. */
export const FEDERATION_LIMITS = { servers: 32, name: 64, key: 512, tenant: 64 } as const;

/** Another Cairn server. */
interface FederationServer {
  /** Name by which questions name it, unique in its tenant: 1 to 64 characters of a-z, 0-9, - and _. */
  readonly name: string;
  /** Address, without a slash at its end. */
  readonly url: string;
  /** Tenant that is asked there; null for the first of the key. */
  readonly remoteTenant: string | null;
}

/** A server with the key that opens it; null for a server that answers without one. */
export interface FederationAccess extends FederationServer {
  readonly key: string | null;
}

/** A server as it is listed. */
export interface FederationRecord extends FederationServer {
  readonly hasKey: boolean;
  /** Time of registration, Unix ms. */
  readonly createdAt: number;
}

/** The servers that the tenants of a data folder may ask. Each belongs to one tenant, and no other can ask it. */
export interface FederationServers {
  /**
   * Registers a server. A key is stored in a sealed folder only: in clear it would open another server to whoever
   * reads a copy of this file, and a key file beside it is copied with it.
   * @param by id of the key that asked for it, for the audit log
   * @throws EngineError `conflict` for a name that is taken, beyond `FEDERATION_LIMITS`, or for a key in a folder that
   *   is not sealed; `not_found` for an unknown tenant
   */
  add(tenantId: string, server: FederationAccess, by?: string): FederationRecord;
  /** Lists the servers of a tenant by name, without their keys. */
  list(tenantId: string): FederationRecord[];
  /** Returns a server with its key; undefined for an unknown one. */
  find(tenantId: string, name: string): FederationAccess | undefined;
  /** Forgets a server and its key. @throws EngineError `not_found` */
  remove(tenantId: string, name: string, by?: string): void;
}
