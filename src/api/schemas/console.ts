/** Schemas of the console's sessions. */
import { z } from 'zod';
import { ROLES } from '../../engine/index.ts';
import { timestamp } from './memory-replies.ts';
import { BODY_EXPECTED, expected, type Wire } from './values.ts';

/** Schema of the JSON body of `POST /console/session`, which exchanges a key for a session. */
export const signInSchema = z.strictObject(
  {
    key: z
      .string(expected('a key'))
      .min(1, 'must not be empty')
      .max(4096, 'at most 4096 characters')
      .describe('A key, or a token of the issuer that `OM_OIDC_ISSUER` names.'),
  },
  BODY_EXPECTED,
);

const EXAMPLE = {
  version: '0.1.0',
  is_open: false,
  has_session: true,
  identity_provider: null,
  caller: {
    key_id: '5f0c2a9d81e6b374',
    role: 'write',
    tenant: 'default',
    tenants: ['default'],
    user_id: null,
    tags: [],
    expires_at: null,
  },
} as const;

/**
 * Schema of the reply 200 to `GET /console/session`, which describes the console's session and its caller, and to `POST
 * /console/session`, which begins a session.
 */
export const sessionReply = z
  .strictObject({
    version: z.string().describe('Version of Cairn.'),
    is_open: z.boolean().describe('Whether no key is configured, so that nobody needs to sign in.'),
    has_session: z.boolean().describe('Whether the request carried the cookie of a session that is under way.'),
    identity_provider: z
      .string()
      .nullable()
      .describe('Host of the identity provider at which `GET /console/oidc` signs in; null if none is configured.'),
    caller: z
      .strictObject({
        key_id: z.string().describe('Public id of the key, as in the audit log.'),
        role: z.enum(ROLES),
        tenant: z.string().describe('Tenant of this request.'),
        tenants: z.array(z.string()).describe('Tenants of the key, which the header `x-cairn-tenant` may name.'),
        user_id: z.string().nullable().describe('The only user whose memories are reached; null for all users.'),
        tags: z
          .array(z.string())
          .describe('Only memories with all of these tags are reached; empty if the key is not bound to tags.'),
        expires_at: timestamp
          .nullable()
          .describe('When the key or token expires; null for never, and after a sign-in at the provider.'),
      })
      .nullable()
      .describe('The caller in whose name the request was made; null if nobody is signed in.'),
  })
  .meta({
    id: 'ConsoleSession',
    examples: [EXAMPLE],
  });
/** Schema of the reply 200 to `DELETE /console/session`, which ends the session. */
export const signedOutReply = sessionReply
  .extend({
    sign_out_url: z
      .string()
      .nullable()
      .describe(
        'Address at which the identity provider ends its own session; null if the session was not opened at a ' +
          'provider, or it names no such address.',
      ),
  })
  .meta({ id: 'SignedOut', examples: [{ ...EXAMPLE, has_session: false, caller: null, sign_out_url: null }] });

export type SessionItem = Wire<typeof sessionReply>;
