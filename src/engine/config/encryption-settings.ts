import { z } from 'zod';
import { CIPHERS } from '../find-file-key.ts';

/** Form of a key as text: 32 bytes as 64 hex digits. */
export const KEY_FORM = /^[0-9a-fA-F]{64}$/;

/** The schema of the settings of encryption at rest. */
export const ENCRYPTION_SETTINGS = {
  OM_ENCRYPTION_KEY_FILE: z
    .string()
    .optional()
    .describe(
      'File that holds the master key, 64 hex digits, and that other users of the machine cannot read. With a key ' +
        'all stored data is encrypted.',
    ),
  OM_ENCRYPTION_KEY: z
    .string()
    .regex(KEY_FORM, 'expected 64 hex digits')
    .optional()
    .describe('The master key itself, 64 hex digits (32 random bytes).'),
  OM_ENCRYPTION_KEY_COMMAND: z
    .string()
    .optional()
    .describe('Command that prints the master key within 30 seconds, such as one that asks a key service.'),
  OM_ENCRYPTION_CIPHER: z
    .enum(CIPHERS)
    .default('aegis')
    .describe(
      'Cipher of new encrypted files: aegis is fast where the processor has AES instructions; sqlcipher is for other ' +
        'machines.',
    ),
};
