import { expect, test } from 'vitest';
import { createCodeFlow } from '../../../src/engine/adapters/code-flow.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { CLIENT_ID, startCodeFlowProvider } from '../../support/code-flow-provider.ts';
import { AUDIENCE } from '../../support/identity-provider.ts';

const RETURN_URL = 'http://127.0.0.1:8080/console';

test.each([
  ['http://login.example.org/end', false],
  ['javascript:alert(1)', false],
  ['https://login.example.org/end', true],
  ['http://127.0.0.1:9/end', true],
])('a session is ended at %s: %s', async (address, isUsed) => {
  await using provider = await startCodeFlowProvider();
  provider.endAddress = address;
  const config = readConfig({
    OM_OIDC_ISSUER: provider.issuer,
    OM_OIDC_AUDIENCE: AUDIENCE,
    OM_OIDC_CLIENT_ID: CLIENT_ID,
  });
  const url = await createCodeFlow({ config, logger: silentLogger }).endUrl(RETURN_URL);
  expect(url?.href.startsWith(address) ?? false).toBe(isUsed);
});
