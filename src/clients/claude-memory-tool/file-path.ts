/** A path below `/memories`, as the list of the names of its folders and, last, of the file or folder itself. */
export type Names = readonly string[];

const ROOT = '/memories';

/**
 * Splits a path into its names.
 * @returns the names below `/memories`; an empty list for `/memories` itself
 * @throws Error if the path is neither `/memories` nor below it, or has a name such as `..` or one with a backslash
 */
export function namesIn(path: string): Names {
  if (path !== ROOT && !path.startsWith(`${ROOT}/`)) throw new Error(`Path must start with ${ROOT}, got: ${path}`);
  const names = path.slice(ROOT.length + 1).split('/');
  if (names.at(-1) === '') names.pop(); // A folder may end in a slash.
  const isOutside = names.some((name) => ['', '.', '..'].includes(name) || /[\\\0]/.test(name));
  if (isOutside) throw new Error(`Path ${path} would escape ${ROOT} directory`);
  return names;
}

export function pathOf(names: Names): string {
  return [ROOT, ...names].join('/');
}

/**
 * Returns the namespace of a folder: `memories`, then one label for each folder's name. Characters that a label must
 * not contain are escaped.
 */
export function namespaceOf(folders: Names): string {
  const labels = folders.map((name) => encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A'));
  return ['memories', ...labels].join('.');
}

/**
 * Returns the names of the folders that a namespace stands for: the reverse of `namespaceOf`. A label that another
 * program chose, and that has a `%` which escapes nothing, is a name as it is.
 */
export function foldersIn(namespace: string): Names {
  return namespace.split('.').slice(1).map(nameIn);
}

function nameIn(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    return label;
  }
}
