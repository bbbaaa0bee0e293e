/** The types of the other Cairn servers to which queries may be forwarded. */

/**
 * Bounds of registered servers: the number of servers of one tenant, and the characters of a name, a key and a tenant's
 * id.
 */
export const FEDERATION_LIMITS = { servers: 32, name: 64, key: 512, tenant: 64 } as const;

/** Another Cairn server, without the key with which it is called. */
interface FederationServer {
  /** Name by which a query refers to the server, unique in its tenant: 1 to 64 characters of a-z, 0-9, - and _. */
  readonly name: string;
  /** Address of the server, without a slash at its end. */
  readonly url: string;
  /**
   * Id of the tenant that is queried on the other server; null for the first tenant of the key with which it is called.
   */
  readonly remoteTenant: string | null;
}

/**
 * A server with the key with which it is called: `key` is the plain API key, null for a server that answers without
 * one.
 */
export interface FederationAccess extends FederationServer {
  readonly key: string | null;
}

/** A server as it is listed, without its key. */
export interface FederationRecord extends FederationServer {
  readonly hasKey: boolean;
  /** Time of registration, Unix ms. */
  readonly createdAt: number;
  /**
   * Public id of the key that registered the server; `cli` for a command on the server's machine, null if it is not
   * known.
   */
  readonly writtenBy: string | null;
}

/**
 * The servers that the tenants of a data folder may query. Each server belongs to one tenant, and no other tenant can
 * query it.
 */
export interface FederationServers {
  /**
   * Registers a server. A key is stored only in an encrypted folder: otherwise whoever reads a copy of the control
   * database could call the other server, and a separate file for the key would be copied along with it. The caller
   * checks the URL, the form of the name and the lengths (`FEDERATION_LIMITS`).
   * @param by public id of the key of the caller; by default a command on this machine
   * @throws EngineError `conflict` for a name that is taken, beyond 32 servers, or for a key in a folder that is not
   *   encrypted; `not_found` for an unknown tenant
   */
  add(tenantId: string, server: FederationAccess, by?: string): FederationRecord;
  /** Lists the servers of a tenant, sorted by name, without their keys. */
  list(tenantId: string): FederationRecord[];
  /** Returns a server with its key; undefined if the tenant has no server of this name. */
  find(tenantId: string, name: string): FederationAccess | undefined;
  /** Whether any tenant has a registered server. */
  hasAny(): boolean;
  /**
   * Removes a server and its key.
   * @param by public id of the key of the caller; by default a command on this machine
   * @throws EngineError `not_found` if the tenant has no server of this name
   */
  remove(tenantId: string, name: string, by?: string): void;
  /**
   * Removes all servers of a tenant that a key registered, and the keys with which they are called.
   * @param writtenBy public id of the key that registered them
   * @param by public id of the key of the caller; by default a command on this machine
   * @returns the number of removed servers
   */
  removeWrittenBy(tenantId: string, writtenBy: string, by?: string): number;
}
