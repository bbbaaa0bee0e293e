import { z } from 'zod';
import { PRIVACY_MODES, SENSITIVE_KINDS } from '../../engine/index.ts';
import type { Wire } from './values.ts';

const mode = z.enum(PRIVACY_MODES);
const kind = z.enum([...SENSITIVE_KINDS.secrets, ...SENSITIVE_KINDS.personal]);

const modes = {
  secrets: mode.describe('Keys, passwords and tokens.'),
  personal: mode.describe('Card and account numbers, e-mail addresses, telephone numbers, addresses of machines.'),
};

/** Schema of the body that replaces a tenant's privacy policy. */
export const privacySchema = z.strictObject(modes);
/** Schema of a tenant's privacy policy in a reply. */
export const privacyReply = z
  .strictObject(modes)
  .meta({ id: 'PrivacyPolicy', examples: [{ secrets: 'redact', personal: 'mark' }] });

/**
 * Fields of the reply to an add that say which sensitive values in the text were redacted or marked; absent if none was
 * found.
 */
export const screenedFields = {
  redacted: z
    .partialRecord(kind, z.int().min(1))
    .exactOptional()
    .describe('Number of values that a marker such as `[REDACTED:iban]` replaced, by kind.'),
  sensitive: z
    .array(kind)
    .min(1)
    .exactOptional()
    .describe('Kinds of values that were stored as they are, as `metadata.sensitive` names them.'),
};
export type ScreenedItem = Wire<z.ZodObject<typeof screenedFields>>;
