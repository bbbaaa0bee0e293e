import { addOnlyTenant, boundTenant, type Engine, isBound, type Principal, type Tenant } from '../engine/index.ts';

/** Opens the tenant of a caller as the caller reaches it: within the bounds of the key, and of the role `add`. */
export async function tenantOf(engine: Engine, principal: Principal): Promise<Tenant> {
  const named = (await engine.tenant(principal.tenantId)).as(principal.keyId);
  const own = principal.role === 'add' ? addOnlyTenant(named, principal.keyId) : named;
  return isBound(principal) ? boundTenant(own, principal) : own;
}
