import { DEFAULT_TENANT, EngineError, type Principal } from '../engine/index.ts';

/**
 * Throws EngineError `forbidden` unless a caller may act for the whole service: admin keys of the default tenant may.
 * @param what what the caller asked for, as the subject of a sentence, such as `the log of the service`
 */
export function requireOperator({ tenantId }: Principal, what: string): void {
  if (tenantId === DEFAULT_TENANT) return;
  throw new EngineError('forbidden', `${what} needs an admin key of the default tenant`);
}

/** Returns the tenant that a request names; one that is not the caller's own is for operators. */
export function tenantNamed(named: string | undefined, principal: Principal, what: string): string {
  if (named === undefined || named === principal.tenantId) return principal.tenantId;
  requireOperator(principal, what);
  return named;
}
