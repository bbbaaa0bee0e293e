import { z } from 'zod';
import { PRIVACY_MODES, SENSITIVE_KINDS } from '../../engine/index.ts';
import type { Wire } from './values.ts';

const mode = z.enum(PRIVACY_MODES);
const kind = z.enum([...SENSITIVE_KINDS.secrets, ...SENSITIVE_KINDS.personal]);

const modes = {
  secrets: mode.describe('What becomes of keys, passwords and tokens in a text.'),
  personal: mode.describe(
    'What becomes of payment cards, IBANs, e-mail addresses, telephone numbers, US social security numbers, and ' +
      'public IP and MAC addresses in a text.',
  ),
};

/** Schema of the body that replaces a tenant's privacy policy. */
export const privacySchema = z.strictObject(modes);
/** Schema of a tenant's privacy policy in a reply. */
export const privacyReply = z
  .strictObject(modes)
  .meta({ id: 'PrivacyPolicy', examples: [{ secrets: 'redact', personal: 'mark' }] });

/**
 * Fields of the reply to an add or an update that say which sensitive values in what was sent were redacted or marked;
 * absent if none was found.
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
    .describe('Kinds of values that were found and stored as they are; `metadata.sensitive` has them if it has room.'),
};
export type ScreenedItem = Wire<z.ZodObject<typeof screenedFields>>;
