/** Schemas of the keys of a tenant. */
import { z } from 'zod';
import { KEY_LIMITS, ROLES } from '../../engine/index.ts';
import { namedTenant } from './admin.ts';
import { count, timestamp } from './memory-replies.ts';
import { BODY_EXPECTED, choice, expected, givenId, label, labels, page, time, type Wire } from './values.ts';

/** Example of a key for the API description and the reference. */
export const keyExample = {
  id: '5f0c2a9d81e6b374',
  role: 'write',
  name: "Ana's laptop",
  user_id: 'ana',
  tags: ['work'],
  created_at: 1795265978965,
  expires_at: 1803041978965,
  last_used_at: 1795269590000,
  revoked_at: null,
} as const;

const key = z
  .strictObject({
    id: z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .describe('Public part of the key; `DELETE /admin/keys/:id` and `cairn keys revoke` take it.'),
    role: z.enum(ROLES),
    name: z.string().describe('Name that a person gave the key; empty for none.'),
    user_id: z.string().nullable().describe('The only user whose memories the key reaches; null for all users.'),
    tags: z.array(z.string()).describe('Tags without which the key reaches no memory; empty for no such bound.'),
    created_at: timestamp,
    expires_at: timestamp.nullable().describe('Unix milliseconds from which the key is refused; null for never.'),
    last_used_at: timestamp
      .nullable()
      .describe('Unix milliseconds of the last use, up to a minute late; null if it was never used.'),
    revoked_at: timestamp.nullable().describe('Unix milliseconds at which the key was revoked; null if it was not.'),
  })
  .meta({
    id: 'Key',
    examples: [keyExample],
  });
export type KeyItem = Wire<typeof key>;
/** Schema of the query string of `GET /admin/keys`, which lists the keys of a tenant, the newest first. */
export const keyQuery = z.strictObject({
  ...page,
  tenant: namedTenant.optional().describe('The tenant; by default that of your key. Others are for operators.'),
});

/** Schema of the JSON body of `POST /admin/keys`, which makes a key, whose secret is shown once. */
export const newKey = z.strictObject(
  {
    role: choice(ROLES).describe('What the key may do.'),
    name: label(KEY_LIMITS.label).optional().describe('Name that people know the key by.'),
    tenants: z
      .array(namedTenant, expected('an array of tenants'))
      .min(1, 'expected at least one tenant')
      .max(KEY_LIMITS.tenants, `expected at most ${KEY_LIMITS.tenants} tenants`)
      .optional()
      .describe('Tenants that the key reaches, the usual one first; by default that of your key.'),
    user_id: givenId
      .max(KEY_LIMITS.userId, `expected at most ${KEY_LIMITS.userId} characters`)
      .optional()
      .describe('The only user whose memories the key reaches. Not for the role admin.'),
    tags: labels(KEY_LIMITS.tags, KEY_LIMITS.tag)
      .optional()
      .describe('Tags without which the key reaches no memory. Not for the role admin.'),
    expires_at: time.optional().describe('Time from which the key is refused; never if left out.'),
  },
  BODY_EXPECTED,
);
export type NewKeyBody = z.output<typeof newKey>;

/** Schema of the reply 201 to `POST /admin/keys`, which makes a key, whose secret is shown once. */
export const madeKey = z.strictObject({
  key,
  secret: z.string().describe('The key itself, for `Authorization: Bearer`. It is shown here and never again.'),
});
/**
 * Schema of the reply 200 to `DELETE /admin/keys/:id`, which revokes a key. Every process refuses the key within a
 * second.
 */
export const revokedKey = key;
/** Schema of the reply 200 to `GET /admin/keys`, which lists the keys of a tenant, the newest first. */
export const keyPage = z.strictObject({ items: z.array(key), total: count });
