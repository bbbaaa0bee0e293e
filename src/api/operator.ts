import { DEFAULT_TENANT, EngineError, type Principal } from '../engine/index.ts';

/**
 * Throws EngineError `forbidden` unless the caller acts in the default tenant. An admin of that tenant is an operator,
 * who may act for the whole service. Only the tenant is checked here; the routes that call this require the role
 * `admin`.
 * @param what what the caller asked for, as the subject of a sentence, such as `the log of the service`
 */
export function requireOperator({ tenantId }: Principal, what: string): void {
  if (tenantId === DEFAULT_TENANT) return;
  throw new EngineError('forbidden', `${what} needs an admin key of the default tenant`);
}

/**
 * Returns the id of the tenant that a request names, by default the caller's own tenant.
 * @param what the subject of the error message, such as `the log of the service`
 * @throws EngineError `forbidden` if a caller who is not an operator names another tenant
 */
export function tenantNamed(named: string | undefined, principal: Principal, what: string): string {
  if (named === undefined || named === principal.tenantId) return principal.tenantId;
  requireOperator(principal, what);
  return named;
}
