import { createHash } from 'node:crypto';
import type { VerifiedToken } from '../engine/adapters/index.ts';
import {
  type Config,
  type ControlDatabase,
  DEFAULT_TENANT,
  EngineError,
  type Holder,
  KEY_LIMITS,
  type Role,
} from '../engine/index.ts';

/** Roles from the strongest to the weakest. A token that names several roles gets the strongest of them. */
const ROLES_BY_MIGHT: readonly Role[] = ['admin', 'write', 'read', 'add'];

/**
 * Returns the holder of a token, which is the caller with its tenants, role and user, from the claims that the settings
 * name. Without a setting for a claim, the tenant is the default one, the role is `read`, and the token is not bound to
 * a user. If a setting names a claim, a token without this claim is refused, since nothing tells what its owner may do.
 * Of the tenants in a claim, only the first `KEY_LIMITS.tenants` count, and those that do not exist are left out. With
 * `OM_OIDC_USER_CLAIM`, the role `admin` becomes `write`.
 * @throws EngineError `forbidden` for a claim that is missing, of a wrong type, or names no tenant or role that exists
 */
export function holderOfToken(
  { subject, expiresAt, claims }: VerifiedToken,
  { config, control }: { readonly config: Config; readonly control: ControlDatabase },
): Holder {
  const tenantIds = tenantsOf(claims, { config, control });
  const userId = userOf(claims, config);
  return {
    tenantId: tenantIds[0],
    tenantIds,
    role: roleOf(claims, config),
    keyId: `oidc:${shortHash([config.OM_OIDC_ISSUER, subject])}`,
    ...(userId === undefined ? {} : { userId }),
    expiresAt,
  };
}

type Claims = VerifiedToken['claims'];

function tenantsOf(
  claims: Claims,
  { config, control }: { readonly config: Config; readonly control: ControlDatabase },
): readonly [string, ...string[]] {
  const name = config.OM_OIDC_TENANT_CLAIM;
  if (name === undefined) return [DEFAULT_TENANT];
  const named = new Set(wordsOf(claimOf(claims, name)).slice(0, KEY_LIMITS.tenants));
  const [first, ...others] = control.existingTenants([...named]);
  if (first === undefined) throw refusal('OM_OIDC_TENANT_CLAIM', 'a tenant of this server');
  return [first, ...others];
}

/**
 * Returns the role that a token gives, `read` without OM_OIDC_ROLE_CLAIM. For a token that is bound to a user, `admin`
 * becomes `write`, since an admin reaches the whole tenant.
 * @throws EngineError `forbidden` if the claim names no role
 */
function roleOf(claims: Claims, config: Config): Role {
  const name = config.OM_OIDC_ROLE_CLAIM;
  if (name === undefined) return 'read';
  const named = wordsOf(claimOf(claims, name));
  const role = ROLES_BY_MIGHT.find((role) => named.includes(role));
  if (role === undefined) throw refusal('OM_OIDC_ROLE_CLAIM', 'one of read, add, write and admin');
  return role === 'admin' && config.OM_OIDC_USER_CLAIM !== undefined ? 'write' : role;
}

function userOf(claims: Claims, config: Config): string | undefined {
  const name = config.OM_OIDC_USER_CLAIM;
  if (name === undefined) return undefined;
  const user = claimOf(claims, name);
  if (typeof user !== 'string' || user === '' || user.length > KEY_LIMITS.userId || /\p{Cc}/u.test(user))
    throw refusal('OM_OIDC_USER_CLAIM', `a user of 1..${KEY_LIMITS.userId} characters`);
  return user;
}

/**
 * Returns the claim of this name. If there is none, the dots of the name lead into nested objects, as in
 * `realm_access.roles`; undefined if that finds nothing either.
 */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Claims)[part];
  }
  return value;
}

/**
 * Returns the words of a claim, which is a list of strings or a text with spaces between its words, as `scope` is; an
 * empty list for anything else.
 */
function wordsOf(claim: unknown): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ').filter(Boolean);
  return Array.isArray(claim) && claim.every((word) => typeof word === 'string') ? claim : [];
}

/**
 * Returns a hash of the values, of 16 hexadecimal digits. It replaces the subject of a token in logs, as that may be a
 * person's name.
 */
function shortHash(values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}

function refusal(setting: string, expected: string): EngineError {
  return new EngineError('forbidden', `the claim of your token that ${setting} names must be ${expected}`);
}
