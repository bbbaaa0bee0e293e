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
 * Finds the key of a file by its path; returns undefined if the file does not lie in the finder's data folder.
 * @param isStale whether the key that it returned last is known to be wrong, so that it must read the key again
 */
export type FindsKey = (file: string, isStale: boolean) => FileKey | undefined;

/**
 * The key finders of this thread, by the path of the default tenant's file. They belong to the thread and are no
 * arguments, because a file opened without its key would be created unencrypted: no caller can forget to pass the key.
 */
const finders = new Map<string, FindsKey>();

/** Sets the finder of the keys of a data folder in this thread; null for a folder that is not encrypted. */
export function useFileKeys(defaultTenantPath: string, find: FindsKey | null): void {
  if (find === null) finders.delete(defaultTenantPath);
  else finders.set(defaultTenantPath, find);
}

/**
 * Returns the key of a file, from the first finder of this thread that knows it; null if none does, so the file is
 * unencrypted.
 * @param isStale whether the key that was returned last is known to be wrong
 */
export function keyOfFile(file: string, isStale = false): FileKey | null {
  const absolute = path.resolve(file);
  for (const find of finders.values()) {
    const key = find(absolute, isStale);
    if (key !== undefined) return key;
  }
  return null;
}
