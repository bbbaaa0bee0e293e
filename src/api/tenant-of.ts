import { addOnlyTenant, boundTenant, type Engine, isBound, type Principal, type Tenant } from '../engine/index.ts';

/**
 * Returns the tenant of a caller, restricted to the user or tags of its key. With the role `add`, adds and jobs are
 * limited as `addOnlyTenant` says; the routes offer such a key nothing else.
 */
export async function tenantOf(engine: Engine, principal: Principal): Promise<Tenant> {
  const named = (await engine.tenant(principal.tenantId)).as(principal.keyId);
  const own = principal.role === 'add' ? addOnlyTenant(named, principal.keyId) : named;
  return isBound(principal) ? boundTenant(own, principal) : own;
}
