import { z } from 'zod';
import { claimName, providerKey, tamperProofUrl } from './setting-kinds.ts';

/** The schema of the settings of an identity provider, whose tokens are accepted beside keys. */
export const TOKEN_SETTINGS = {
  OM_OIDC_ISSUER: tamperProofUrl()
    .optional()
    .describe(
      'Issuer whose tokens (JWT) are accepted beside keys, as they name it: https, or http on loopback ' +
        '(docs/guides/tokens.md).',
    ),
  OM_OIDC_AUDIENCE: z
    .string()
    .max(1000, 'expected at most 1000 characters')
    .optional()
    .describe('Audience that a token must be for; needed with OM_OIDC_ISSUER.'),
  OM_OIDC_JWKS_URL: tamperProofUrl()
    .optional()
    .describe("URL of the issuer's public keys; empty asks the issuer's /.well-known/openid-configuration."),
  OM_OIDC_CLIENT_ID: z
    .string()
    .max(1000, 'expected at most 1000 characters')
    .optional()
    .describe('Client id under which the issuer knows the console; if set, people sign in to it there.'),
  OM_OIDC_CLIENT_SECRET: providerKey().describe('Secret of that client; empty for a public client, which has none.'),
  OM_OIDC_SCOPE: z
    .string()
    .regex(/^openid( [\x21-\x7e]+)*$/, 'expected openid, and other scopes after it with single blanks between')
    .max(1000, 'expected at most 1000 characters')
    .default('openid')
    .describe('Scopes that the console asks for, such as those whose claims hold the role.'),
  OM_OIDC_TENANT_CLAIM: claimName().describe(
    "Claim that names a token's tenant, or several; empty gives all tokens the default tenant.",
  ),
  OM_OIDC_ROLE_CLAIM: claimName().describe(
    "Claim that holds a token's role: read, add, write or admin; empty gives all tokens the role read.",
  ),
  OM_OIDC_USER_CLAIM: claimName().describe(
    'Claim that holds the user_id to which a token is bound, such as sub; empty binds tokens to no user.',
  ),
};
