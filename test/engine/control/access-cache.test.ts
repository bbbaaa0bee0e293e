import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openAccessCache } from '../../../src/engine/control/access-cache.ts';
import { openControlFile } from '../../../src/engine/control/control-file.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('a change of a setting reads no keys and tenants again, unless another process changed something', () => {
  const name = path.join(tempFolder(), 'control.sqlite');
  const [file, other] = [openControlFile(name), openControlFile(name)];
  onTestFinished(() => [file, other].forEach((one) => one.close()));
  file.write(() => file.statements.insertTenant.run('set-here', 0));
  const { listLiveKeys } = file.statements;
  let reads = 0;
  const statements = {
    ...file.statements,
    listLiveKeys: Object.assign(Object.create(listLiveKeys) as typeof listLiveKeys, {
      all: () => {
        reads += 1;
        return listLiveKeys.all();
      },
    }),
  };
  const cache = openAccessCache({ ...file, statements });
  const elsewhere = openAccessCache(other);
  expect(reads).toBe(1);
  for (let no = 0; no < 5; no += 1) cache.changeSetting('set-here', 'colour', `${no}`);
  expect(reads).toBe(1);
  expect(cache.getSetting('set-here', 'colour')).toBe('4');
  elsewhere.changeSetting('set-here', 'colour', 'blue');
  cache.changeSetting('set-here', 'size', 'large');
  expect(reads).toBe(2);
  expect([cache, elsewhere].map((one) => one.getSetting('set-here', 'size'))).toEqual(['large', 'large']);
});
