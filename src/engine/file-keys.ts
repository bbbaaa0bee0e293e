import path from 'node:path';

/** Ciphers that can seal a database. */
export const CIPHERS = ['aegis', 'sqlcipher'] as const;
export type Cipher = (typeof CIPHERS)[number];

/** Key of a sealed database, and the cipher that it was sealed with. */
export interface FileKey {
  readonly cipher: Cipher;
  /** 32 random bytes. */
  readonly bytes: Uint8Array;
}

/**
 * Finds the key of a file; undefined for a file that it knows nothing of.
 * @param isStale whether the key that it found last is known to be wrong, so that it must look again
 */
export type FindsKey = (file: string, isStale: boolean) => FileKey | undefined;

/**
 * The finders of this thread by the path of the default tenant's file. They are the thread's and not arguments, since a
 * file that is opened without its key would be made in clear: whoever opens a file cannot forget the key.
 */
const finders = new Map<string, FindsKey>();

/** Sets the finder of the keys of a data folder in this thread; null for a folder in clear. */
export function useFileKeys(defaultTenantPath: string, find: FindsKey | null): void {
  if (find === null) finders.delete(defaultTenantPath);
  else finders.set(defaultTenantPath, find);
}

/** Returns the key that this thread has for a file; null if the file is to be in clear. */
export function keyOfFile(file: string, isStale = false): FileKey | null {
  const absolute = path.resolve(file);
  for (const find of finders.values()) {
    const key = find(absolute, isStale);
    if (key !== undefined) return key;
  }
  return null;
}
