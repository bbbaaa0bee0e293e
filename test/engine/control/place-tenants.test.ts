import { expect, test } from 'vitest';
import type { ControlFile } from '../../../src/engine/control/control-file.ts';
import { createPlacedTenants } from '../../../src/engine/control/place-tenants.ts';
import type { Config } from '../../../src/engine/config.ts';

test('no database is asked to erase a tenant that also has rows in one that the settings do not name', () => {
  // Nothing listens there, so that the first statement sent to it would be the error.
  const config = { OM_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', databases: {}, paths: {} };
  const placed = createPlacedTenants({} as ControlFile, config as unknown as Config);

  expect(() => placed.erase('acme', [null, 'gone'])).toThrow(
    'tenant acme has rows in the database gone, which OM_DATABASES does not name: nothing is erased',
  );
});
