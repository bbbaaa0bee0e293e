/**
 * Returns bodies of `POST /memory/ingest` that are cheap to send but expensive to parse, by name. Each has about
 * `bytes` bytes.
 */
export function hostileBodies(bytes: number): Readonly<Record<string, string>> {
  const start = '{"text":"a","config":';
  const times = (unit: string) => unit.repeat(Math.floor(bytes / unit.length));
  const names = Array.from({ length: Math.floor(bytes / 12) }, (_, no) => `"k${no}":1`).join(',');
  return {
    'empty lists': `${start}{"a":[${times('[],')}[]]}}`,
    'empty objects': `${start}{"a":[${times('{},')}{}]}}`,
    'deep lists': `${start}${times('[')}${times(']')}}`,
    'many names': `${start}{${names}}}`,
    numbers: `${start}{"a":[${times('0,')}0]}}`,
  };
}
