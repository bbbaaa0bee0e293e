/**
 * Pairs of facts for the rules that find contradictions by their form. They were written before the rules. Pairs at
 * even places are those that the rules were written on; those at odd places were set aside and looked at once.
 */

/** Two statements about one thing. */
export type Pair = readonly [earlier: string, later: string];

const pairsOf = (lines: string): Pair[] =>
  lines
    .trim()
    .split('\n')
    .map((line) => line.split(' | ') as [string, string]);

/** Pairs that cannot both hold now. */
export const CONFLICTING: readonly Pair[] = pairsOf(`
Ana lives in Berlin. | Ana lives in Lisbon.
My sister lives in Oslo. | My sister moved to Bergen.
I live in Madrid. | I have moved to Valencia.
Tom resides in Leeds. | Tom lives in York now.
Ben works at Siemens. | Ben works for Bosch.
I work at a bakery called Lieken. | I now work for Aldi.
Carla works as a nurse. | Carla works as a teacher.
My boss is Ingrid. | My boss is Petra.
Ana's favourite colour is green. | Ana's favourite colour is purple.
My favorite food is ramen. | My favorite food is pizza.
The favourite band of Tom is Blur. | Tom's favourite band is Oasis.
Ben's birthday is 3 May. | Ben's birthday is on 5 May.
My birthday is on March 12. | My birthday is on April 12.
Nora's phone number is 555-0134. | Nora's phone number is 555-0199.
My email address is ana@old.example. | My email address is ana@new.example.
Our wifi password is blueberry. | Our wifi password is raspberry.
The API listens on port 8080. | The API listens on port 9090.
The request timeout is 30 seconds. | The request timeout is 60 seconds.
The retry limit is 3. | The retry limit is 5.
The staging database runs on host db-2. | The staging database runs on host db-7.
The deadline of the report is Friday. | The deadline of the report is Monday.
The weekly standup is at 9:30. | The weekly standup is at 10:00.
The team meeting is on Tuesday. | The team meeting is on Thursday.
The shop opens at 8 am. | The shop opens at 10 am.
The library closes at 18:00. | The library closes at 20:00.
The ticket costs 12 euros. | The ticket costs 15 euros.
Our rent is 900 euros. | Our rent is 1100 euros.
My sister has two children. | My sister has three children.
The team has 5 members. | The team has 7 members.
The free plan allows 100 requests. | The free plan allows 500 requests.
Ana drinks coffee. | Ana no longer drinks coffee.
I smoke. | I don't smoke anymore.
Tom plays the violin. | Tom stopped playing the violin.
My father eats meat. | My father does not eat meat.
Ben likes olives. | Ben doesn't like olives.
I speak Italian. | I do not speak Italian.
Carla owns a car. | Carla no longer owns a car.
Nora is vegetarian. | Nora is not vegetarian any more.
Ana is married to Luis. | Ana is no longer married to Luis.
My brother is a smoker. | My brother is not a smoker.
The cache is enabled. | The cache is disabled.
The museum is open on Mondays. | The museum is closed on Mondays.
My grandmother is alive. | My grandmother is dead.
Ben is single. | Ben is married.
The repository is public. | The repository is private.
The admin flag is on by default. | The admin flag is off by default.
Caroline: I live in Boston. | Caroline: I moved to Denver.
Ana's husband is called Luis. | Ana's husband is called Marco.
My dog's name is Rex. | My dog's name is Bruno.
The capital of the province is Zwolle. | The capital of the province is Kampen.
The project uses Postgres 14. | The project uses Postgres 16.
We use npm. | We no longer use npm.
The build machine runs Ubuntu 20.04. | The build machine runs Ubuntu 24.04.
Our CI uses Jenkins. | Our CI switched from Jenkins to GitHub Actions.
Maria's shoe size is 38. | Maria's shoe size is 40.
My blood type is A positive. | My blood type is O negative.
The owner of the billing service is Dana. | The owner of the billing service is Felix.
Since March Tom lives in Utrecht. | Tom lives in Delft.
Ben lives in Porto. | Since 2024 Ben lives in Faro.
Our office is in Hamburg. | Our office moved to Bremen.
The train to Oslo takes 4 hours. | The train to Oslo takes 6 hours.
The maximum upload size is 10 MB. | The maximum upload size is 25 MB.
My car is red. | My car is blue.
The default branch is master. | The default branch is main.
Ana is allergic to peanuts. | Ana is not allergic to peanuts.
I am left-handed. | I am right-handed.
The manager of the Lyon branch is Paul. | The manager of the Lyon branch is now Odile.
Tom trusts the new supplier. | Tom does not trust the new supplier.
`);

/** Pairs that look alike and can both hold. */
export const COMPATIBLE: readonly Pair[] = pairsOf(`
Ana lives in Berlin. | Ben lives in Lisbon.
My sister lives in Oslo. | My brother moved to Bergen.
Ana lives in Berlin. | Ana works in Potsdam.
Ana lives in Berlin. | Ana lives in Kreuzberg, Berlin.
Ana lived in Berlin. | Ana lives in Lisbon.
In 2015 Ana lived in Berlin. | Ana lives in Lisbon.
Ana lives in Berlin. | Ana was born in Lisbon.
Ana lives in Berlin. | Ana lives in a small flat.
Ana lives in Berlin. | Ana lives in Berlin with her cat.
Ana used to live in Berlin. | Ana lives in Lisbon.
Ana wants to live in Berlin. | Ana lives in Lisbon.
Ana might move to Berlin. | Ana lives in Lisbon.
Ana lives in Berlin during the week. | Ana lives in Lisbon at the weekend.
Ben works at Siemens. | Ben works at home.
Ben works at Siemens. | Ben worked for Bosch.
Ben works at Siemens. | Ben works at night.
Ben works at Siemens. | Ben works as an engineer.
Ben works for Siemens and Bosch. | Ben works for Bosch.
Ben works for Siemens. | Ben also works for Bosch.
Ben's sister works for Siemens. | Ben works for Bosch.
My favourite colour is green. | My sister's favourite colour is purple.
My favourite colour is green. | My favourite food is ramen.
My favourite colours are green and blue. | My favourite colour is green.
My favourite colour was green. | My favourite colour is purple.
One of my favourite bands is Blur. | One of my favourite bands is Oasis.
Ben's birthday is 3 May. | Nora's birthday is 5 May.
Ben's birthday is 3 May. | Ben's birthday party is on 5 May.
Ben's birthday is in May. | Ben's birthday is on 3 May.
Ben's birthday is on a Friday. | Ben's birthday is 3 May.
Nora's phone number is 555-0134. | Nora's work phone number is 555-0199.
My work email is ana@corp.example. | My private email is ana@home.example.
The API listens on port 8080. | The admin API listens on port 9090.
The API listens on port 8080. | The API listens on localhost.
The API timeout is 30 seconds. | The database timeout is 60 seconds.
The timeout is 30 seconds. | The timeout was 60 seconds.
The timeout is 30 seconds in production. | The timeout is 60 seconds in staging.
The timeout is 60 seconds. | The timeout is 1 minute.
The retry limit is 3. | The upload limit is 5.
The retry limit is 3. | The retry limit is three.
The deadline of the report is Friday. | The deadline of the audit is Monday.
The deadline is Friday. | The deadline is 17:00.
The standup is at 9:30. | The standup is on Mondays.
The standup is at 9:30. | The standup is at 9:30 in room 4.
The team meeting on Tuesday is at 10:00. | The team meeting on Thursday is at 11:00.
The shop opens at 8 am. | The shop closes at 8 pm.
The shop opens at 8 am on weekdays. | The shop opens at 10 am on Sundays.
The ticket costs 12 euros. | The ticket for children costs 6 euros.
The ticket costs 12 euros. | The ticket cost 9 euros in 2019.
A ticket costs 12 euros. | A ticket costs 15 dollars.
Our rent is 900 euros. | Our rent was 800 euros.
My sister has two children. | My sister has three cats.
My sister has two children. | My brother has three children.
My sister has a son. | My sister has a daughter.
The team has 5 members. | The team has 2 offices.
The team has 5 members. | The new team has 7 members.
Ana drinks coffee. | Ana drinks tea.
Ana drinks coffee. | Ana does not drink beer.
Ana drinks coffee. | Ben does not drink coffee.
Ana drinks coffee. | Ana does not drink coffee in the evening.
Ana drinks coffee in the morning. | Ana doesn't drink coffee after lunch.
Ana drank coffee. | Ana does not drink coffee.
I smoke. | My wife doesn't smoke.
Tom plays the violin. | Tom plays the piano.
Tom plays the violin. | Tom's son stopped playing the violin.
Tom plays the violin. | Tom did not play the violin yesterday.
Tom does not play chess. | Tom does not play poker.
My father eats meat. | My father does not eat pork.
My father eats meat. | My mother does not eat meat.
Ben likes olives. | Ben likes anchovies.
Ben likes olives. | Ben doesn't like green olives.
Ben likes olives. | Nora hates olives.
Ben likes olives. | Ben thinks olives are expensive.
I speak Italian. | I speak French.
I speak Italian. | I do not speak Italian at work.
I speak Italian. | Do you speak Italian?
I speak Italian. | I don't think I speak Italian well.
Carla owns a car. | Carla owns a bike.
Carla owns a car. | Carla no longer owns a boat.
Nora is vegetarian. | Nora is tall.
Nora is vegetarian. | Nora's husband is not vegetarian.
Ana is married to Luis. | Ana is not happy.
Ana is married to Luis. | Luis is married to Ana.
Ana is a nurse. | Ana is a mother.
Ana is a nurse. | Ana is not a doctor.
The cache is enabled. | The proxy is disabled.
The cache is enabled in production. | The cache is disabled in tests.
If the cache is disabled, pages are slow. | The cache is enabled.
The cache was disabled. | The cache is enabled.
The museum is open on Mondays. | The museum is closed on Tuesdays.
The museum is open on Mondays. | The museum is open on Tuesdays.
The museum is open. | The museum is old.
Ben is single. | Tom is married.
The repository is public. | The wiki is private.
The repository is public. | The repository is small.
Caroline: I live in Boston. | Melanie: I live in Denver.
Caroline: I love painting. | Melanie: I don't love painting.
Ana's husband is called Luis. | Ana's brother is called Marco.
My dog's name is Rex. | My cat's name is Bruno.
The capital of the province is Zwolle. | The capital of the region is Kampen.
The project uses Postgres 14. | The project uses Redis 7.
The project uses Postgres. | The project uses Redis.
We use npm. | We use yarn in the old project.
We use npm. | The other team no longer uses npm.
Our CI uses Jenkins. | Our CI uses Docker.
Our CI uses Jenkins. | Our website switched from Jenkins to GitHub Actions.
Maria's shoe size is 38. | Maria's dress size is 40.
The owner of the billing service is Dana. | The owner of the mail service is Felix.
The owner of the billing service is Dana. | Dana is the owner of the mail service.
In March Tom stayed in Utrecht. | Tom lives in Delft.
Tom visited Utrecht. | Tom lives in Delft.
Tom moved to Utrecht in 2010. | Tom lives in Delft.
Tom moved to the second floor. | Tom lives in Delft.
Our office is in Hamburg. | Our warehouse moved to Bremen.
Our office is in Hamburg. | Our office is in Germany.
We have an office in Hamburg. | We have an office in Bremen.
The train to Oslo takes 4 hours. | The train to Bergen takes 6 hours.
The bus takes 40 minutes. | The bus takes 20 passengers.
My car is red. | My bike is blue.
My car is red. | My car is fast.
My car is red and blue. | My car is blue.
The default branch is main. | The release branch is stable.
Ana is allergic to peanuts. | Ana is allergic to shellfish.
Ana is allergic to peanuts. | Ana is not allergic to cats.
I am left-handed. | My daughter is right-handed.
The manager of the Lyon branch is Paul. | The manager of the Lille branch is Odile.
Tom trusts the new supplier. | Tom does not trust the old supplier.
Tom says the supplier is good. | Nora says the supplier is bad.
The film is good, says Tom. | The film is not good, says Nora.
I think the plan is good. | I think the plan is expensive.
She lives in Berlin. | She lives in Lisbon.
He likes jazz. | He doesn't like jazz.
It is open. | It is closed.
Some shops open at 8 am. | Some shops open at 10 am.
A friend of mine lives in Rome. | A friend of mine lives in Paris.
Another colleague works for Bosch. | Another colleague works for Siemens.
The first release is on Monday. | The second release is on Thursday.
Version 1.2 is supported. | Version 1.4 is not supported.
The recipe needs 2 eggs. | The recipe needs 200 grams of flour.
The recipe takes 2 hours. | The recipe takes some patience.
Yesterday the meeting was at 9:00. | The meeting is at 10:00.
Tomorrow the meeting is at 9:00. | The meeting is at 10:00.
Remind me to call Ana. | Remind me not to call Ana.
Ana ran 5 km. | Ana ran 7 km.
Ana runs 5 km. | Ana runs 7 km.
Ana scored 12 points. | Ana scored 15 points.
The temperature is 20 degrees today. | The temperature is 25 degrees today.
Tom knows Ana. | Tom knows Ben.
My uncle sometimes lives in Madrid. | My uncle lives in Valencia.
Only Ben lives in Porto. | Ben lives in the old town of Porto.
The order has 3 items. | The order has 3 items and 2 notes.
I have a meeting at 9:00. | I have a meeting at 11:00.
I take 2 pills in the morning. | I take 3 pills in the evening.
Paul's train leaves at 7:15. | Paula's train leaves at 8:40.
`);
