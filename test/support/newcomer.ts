import type { Page } from 'playwright-core';

/**
 * Does in the console of a new service what a person does who has just installed it, and who follows only the words of
 * the empty page and of the guide: adds a memory, sends a query about it, and opens the reason why it was found. If the
 * page does not offer one of these steps, the function fails.
 * @returns the reason that the page shows for the memory
 */
export async function walkAsNewcomer(page: Page, url: string): Promise<string> {
  await page.goto(`${url}/console`);
  await page.getByRole('heading', { name: 'Nothing is remembered yet' }).waitFor();
  await page.getByRole('button', { name: 'Add a memory' }).click();
  await page.getByRole('dialog').getByLabel('Text').fill('The harbour ferry to Cacilhas leaves at seven.');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'What do you want to know?' }).waitFor();
  await page.getByRole('searchbox', { name: 'Question' }).fill('When does the ferry leave?');
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  const match = page.getByRole('article', { name: 'Match 1' });
  await match.getByText('Cacilhas').waitFor();
  await match.locator('summary').click();
  return (await match.locator('details dl').textContent()) ?? '';
}
