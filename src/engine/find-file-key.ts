/**
 * Finds the key of an encrypted database file. The keys themselves are made, stored and derived in
 * `control/data-keys.ts` and `control/wrapped-key.ts`.
 */

import path from 'node:path';

/** Ciphers with which a database file can be encrypted. */
export const CIPHERS = ['aegis', 'sqlcipher'] as const;
export type Cipher = (typeof CIPHERS)[number];

/** Key of an encrypted database file, and the cipher with which the file is encrypted. */
export interface FileKey {
  readonly cipher: Cipher;
  /** 32 random bytes. */
  readonly bytes: Uint8Array;
}

/**
 * Finds the encryption key of a file by its path; returns undefined if the file does not lie in the data folder for
 * which the function was made.
 * @param isStale true if the key that it returned last did not open the file, so that it must read the key again
 * @throws EngineError the errors of `readDataKey`
 */
export type FindsKey = (file: string, isStale: boolean) => FileKey | undefined;

/**
 * The functions that find keys in this thread, by the path of the default tenant's file. They are kept by thread and
 * not passed as arguments, because a file opened without its key would be created unencrypted: no caller can forget to
 * pass the key.
 */
const finders = new Map<string, FindsKey>();

/** Sets the function that finds the keys of a data folder in this thread; null for a folder that is not encrypted. */
export function useFileKeys(defaultTenantPath: string, find: FindsKey | null): void {
  if (find === null) finders.delete(defaultTenantPath);
  else finders.set(defaultTenantPath, find);
}

/**
 * Returns the encryption key of a file, from the first `FindsKey` of this thread that knows the file; null if none
 * does, so the file is unencrypted.
 * @param isStale true if the key that was returned last did not open the file
 * @throws EngineError the errors of `readDataKey`, such as `not_found` for a file of the folder that has no key
 */
export function keyOfFile(file: string, isStale = false): FileKey | null {
  const absolute = path.resolve(file);
  for (const find of finders.values()) {
    const key = find(absolute, isStale);
    if (key !== undefined) return key;
  }
  return null;
}
