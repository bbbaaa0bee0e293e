/** Schemas of the keys of a tenant. */
import { z } from 'zod';
import { ROLES } from '../../engine/index.ts';
import { count, timestamp } from './memory-replies.ts';
import type { Wire } from './values.ts';

const key = z
  .strictObject({
    id: z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .describe('Public part of the key; `cairn keys revoke` takes it.'),
    role: z.enum(ROLES),
    name: z.string().describe('Name that a person gave the key; empty for none.'),
    user_id: z.string().nullable().describe('The only user whose memories the key reaches; null for all users.'),
    tags: z.array(z.string()).describe('Tags without which the key reaches no memory; empty for no such bound.'),
    created_at: timestamp,
    expires_at: timestamp.nullable().describe('Unix milliseconds from which the key is refused; null for never.'),
    last_used_at: timestamp.nullable().describe('Unix milliseconds of the last use, up to a minute late; or null.'),
    revoked_at: timestamp.nullable().describe('Unix milliseconds at which the key was revoked; null if it was not.'),
  })
  .meta({
    id: 'Key',
    examples: [
      {
        id: '5f0c2a9d81e6b374',
        role: 'write',
        name: "Ana's laptop",
        user_id: 'ana',
        tags: ['work'],
        created_at: 1795265978965,
        expires_at: 1803041978965,
        last_used_at: 1795269590000,
        revoked_at: null,
      },
    ],
  });
export type KeyItem = Wire<typeof key>;
export const keyPage = z.strictObject({ items: z.array(key), total: count });
