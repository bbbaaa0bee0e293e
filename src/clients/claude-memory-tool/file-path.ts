/** A path below `/memories`, as the names of its folders and its file. */
export type Names = readonly string[];

const ROOT = '/memories';

/**
 * Reads a path.
 * @returns the names below `/memories`; none for `/memories` itself
 * @throws Error for a path that is not below `/memories`
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

/** The namespace of a folder: a label for each name, behind `memories`. What a label must not hold is escaped. */
export function namespaceOf(folders: Names): string {
  const labels = folders.map((name) => encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A'));
  return ['memories', ...labels].join('.');
}

/** The folder of a namespace. */
export function foldersIn(namespace: string): Names {
  return namespace.split('.').slice(1).map(decodeURIComponent);
}
