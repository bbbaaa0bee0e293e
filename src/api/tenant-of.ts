import { addOnlyTenant, boundTenant, type Engine, isBound, type Principal, type Tenant } from '../engine/index.ts';

/**
 * Returns the tenant of a caller, restricted to what the caller may do: to the user or tags of its key, and with the
 * role `add` to what the key itself wrote.
 */
export async function tenantOf(engine: Engine, principal: Principal): Promise<Tenant> {
  const named = (await engine.tenant(principal.tenantId)).as(principal.keyId);
  const own = principal.role === 'add' ? addOnlyTenant(named, principal.keyId) : named;
  return isBound(principal) ? boundTenant(own, principal) : own;
}
