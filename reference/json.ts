const WIDTH = 118;

/** Writes JSON on few lines: a value that fits stands on one line, others are broken by field or entry. */
export function compactJson(value: unknown, indent = ''): string {
  const flat = JSON.stringify(value);
  if (flat === undefined || indent.length + flat.length <= WIDTH || typeof value !== 'object' || value === null)
    return flat;
  const inner = `${indent} `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = Array.isArray(value)
    ? value.map((entry) => compactJson(entry, inner))
    : Object.entries(value).map(([name, entry]) => `${JSON.stringify(name)}:${compactJson(entry, inner)}`);
  return `${open}${filled(parts, inner)}${close}`;
}

/** Fills lines with as many parts as fit. */
function filled(parts: readonly string[], indent: string): string {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const isShort = !part.includes('\n') && last !== undefined && !last.includes('\n');
    if (isShort && indent.length + last.length + 1 + part.length <= WIDTH) lines[lines.length - 1] = `${last},${part}`;
    else lines.push(part);
  }
  return lines.join(`,\n${indent}`);
}
