/**
 * Well-known names by entity type, such as `technology`. Commas separate entries. Further spellings of a name follow a
 * `|`; all of them are stored under the first spelling. `^` before a spelling marks a name that is also a plain word:
 * in a memory it counts as a name only with a capital, and at the beginning of a sentence only before a verb of named
 * things (`isNameLike` in names.ts); in a query it always counts.
 */
export const LEXICON: Readonly<Record<string, string>> = {
  technology: `
    JavaScript|JS, TypeScript, Python, Java, Kotlin, ^Swift, Objective-C, C++|cpp, C#|csharp, ^Go|golang, ^Rust,
    ^Ruby, PHP, ^Perl, ^Scala, Clojure, Haskell, OCaml, Erlang, Elixir, Lua, ^Dart, Fortran, COBOL, MATLAB, Bash,
    PowerShell, Zig, SQL, GraphQL, HTML, CSS, Sass, XML, JSON, YAML, TOML, Markdown, LaTeX, WebAssembly|WASM,
    Protobuf|protocol buffers, Avro, ^Parquet, Arrow Flight, PostgreSQL|Postgres, MySQL, MariaDB, SQLite, Oracle
    Database, SQL Server|MSSQL, MongoDB|Mongo, Redis, Valkey, Memcached, ^Cassandra, ScyllaDB, CouchDB, DynamoDB,
    Firestore, Firebase, Supabase, BigQuery, ^Snowflake, Redshift, ClickHouse, DuckDB, InfluxDB, TimescaleDB, Neo4j,
    Elasticsearch|Elastic Search, OpenSearch, Lucene, Solr, Meilisearch, Typesense, Algolia, Pinecone, Qdrant,
    Weaviate, Milvus, ^Chroma, pgvector, FTS5, etcd, ^Consul, ZooKeeper, CockroachDB, PlanetScale, Kafka|Apache Kafka,
    RabbitMQ, NATS, ActiveMQ, SQS|Amazon SQS, SNS, ^Kinesis, ^Pulsar, MQTT, AMQP, ZeroMQ, BullMQ, ^Celery, Sidekiq,
    ^Spark|Apache Spark, Hadoop, Flink|Apache Flink, Airflow|Apache Airflow, Dagster, dbt, Trino, ^Presto, ^Hive,
    Docker, Kubernetes|k8s, ^Helm, Podman, containerd, Docker Compose, Docker Swarm, ^Nomad, Istio, ^Envoy, Linkerd,
    nginx, Apache HTTPD, HAProxy, Traefik, ^Caddy, ^Varnish, Cloudflare, Fastly, Terraform, OpenTofu, Pulumi, Ansible,
    ^Puppet, SaltStack, ^Vagrant, ^Packer, Jenkins, GitHub Actions, GitLab CI, CircleCI, Travis CI, Argo CD|ArgoCD,
    Tekton, GitHub, GitLab, Bitbucket, Git, ^Mercurial, ^Subversion, npm, pnpm, ^Yarn, pip, ^Poetry, Maven, Gradle,
    Bazel, CMake, Makefile, Homebrew, apt-get, AWS|Amazon Web Services, Azure|Microsoft Azure, GCP|Google Cloud|Google
    Cloud Platform, DigitalOcean, Heroku, Vercel, Netlify, Fly.io, Hetzner, S3|Amazon S3, EC2, ^Lambda|AWS Lambda,
    Fargate, EKS, ECS, RDS, CloudFront, CloudWatch, Route 53, IAM, Cognito, Linux, Ubuntu, Debian, ^Fedora, Alpine
    Linux, Arch Linux, NixOS, FreeBSD, ^Windows, macOS, iOS, Android, Raspberry Pi, Arduino, systemd, tmux, Vim,
    Neovim, Emacs, VS Code|VSCode|Visual Studio Code, IntelliJ, Xcode, Android Studio, Jupyter|Jupyter Notebook,
    Prometheus, Grafana, ^Datadog, ^Sentry, Splunk, Kibana, Logstash, Fluentd, ^Loki, Jaeger, Zipkin,
    OpenTelemetry|OTel, PagerDuty, HTTP, HTTPS, HTTP/2, HTTP/3, QUIC, TCP, UDP, DNS, TLS|SSL, SSH, FTP, SMTP, IMAP,
    WebSocket|WebSockets, WebRTC, gRPC, REST API, Server-Sent Events, OpenAPI|Swagger, JSON-RPC, ^SOAP, LDAP,
    Kerberos, SAML, OAuth|OAuth2|OAuth 2.0, OpenID Connect|OIDC, JWT|JSON Web Token|JSON Web Tokens, Keycloak, Auth0,
    Okta, HashiCorp Vault, bcrypt, Argon2, AES, RSA, HMAC, SHA-256, WebAuthn, Passkey, ^Stripe, PayPal, Twilio,
    SendGrid, ^Slack, ^Discord, ^Zoom, ^Notion, Jira, ^Confluence, Trello, ^Asana, Linear app, Figma, Photoshop,
    ^Excel, Google Sheets, Google Docs, Google Drive, Dropbox, OneDrive, Gmail, ^Outlook, WhatsApp, ^Telegram,
    Instagram, YouTube, Spotify, Netflix, ^Obsidian, ChatGPT, OpenAI, Anthropic, GPT-4, ^Llama, Mistral, ^Gemini,
    Ollama, vLLM, Hugging Face, CUDA, Bluetooth, USB, Wi-Fi|WiFi, GPS, Ethereum, Bitcoin, Blockchain,
    Node.js|^Node|NodeJS, Deno, Bun runtime, JVM, LLVM, GCC, V8, dotnet`,
  library: `
    ^React|React.js|ReactJS, React Native, Preact, Vue|Vue.js|VueJS, Nuxt, ^Angular|AngularJS, ^Svelte, SvelteKit,
    SolidJS, ^Ember, Next.js|NextJS, Remix run, Astro build, Redux, MobX, Zustand, RxJS, jQuery, D3|D3.js,
    Three.js|ThreeJS, Tailwind|Tailwind CSS|TailwindCSS, Bootstrap CSS, Material UI|MUI, ^Electron, Tauri, ^Flutter,
    SwiftUI, UIKit, Jetpack Compose, Qt, GTK, Express.js|ExpressJS, Fastify, NestJS|Nest.js, Koa, Hapi, Hono, Django,
    ^Flask, FastAPI, Starlette, Pyramid framework, Tornado web, ^Rails|Ruby on Rails, Sinatra, Laravel, Symfony,
    Spring Boot, Spring Framework, Quarkus, Micronaut, Hibernate, ASP.NET, Entity Framework, Gin framework, Echo
    framework, Actix, Axum, Rocket framework, Tokio, Serde, Diesel ORM, Phoenix LiveView, SQLAlchemy, Alembic, Prisma,
    TypeORM, Sequelize, Drizzle ORM, Knex, Mongoose, Kysely, better-sqlite3, sqlite-vec, Zod, Pydantic, ^Jest, Vitest,
    ^Mocha, ^Jasmine, ^Cypress, ^Playwright, ^Puppeteer, ^Selenium, pytest, JUnit, RSpec, Testcontainers, ^Storybook,
    ESLint, ^Prettier, Webpack, Vite, ^Rollup, esbuild, Parcel bundler, ^Babel, SWC, Turborepo, Lodash, Axios, Day.js,
    Moment.js, Socket.IO, Passport.js, Winston logger, Pino, NumPy, ^Pandas, SciPy, scikit-learn|sklearn, Matplotlib,
    Seaborn, Plotly, Polars, Dask, TensorFlow, PyTorch, Keras, JAX, XGBoost, LightGBM, spaCy, NLTK, Hugging Face
    Transformers, LangChain, LangGraph, LlamaIndex, Sentence Transformers, FAISS, OpenCV, Pillow library, Beautiful
    Soup|BeautifulSoup, Scrapy, Streamlit, Gradio, Apollo Client, Apollo Server, tRPC, Netty, Akka, Jackson library,
    ^Lombok, Guava library, ^Retrofit, OkHttp, Boost C++, Unity engine, Unreal Engine, Godot`,
  pattern: `
    singleton pattern|singleton, factory pattern|factory method, abstract factory, builder pattern, prototype pattern,
    adapter pattern, bridge pattern, composite pattern, decorator pattern, facade pattern, flyweight pattern, proxy
    pattern, observer pattern, strategy pattern, command pattern, iterator pattern, mediator pattern, memento pattern,
    state machine, visitor pattern, template method, repository pattern, unit of work, active record, data mapper,
    dependency injection, inversion of control, service locator, CQRS, event sourcing, event-driven architecture,
    domain-driven design|DDD, hexagonal architecture|ports and adapters, clean architecture, layered architecture,
    microservice|microservice architecture, monolith|modular monolith, service mesh, API gateway, backend for
    frontend, sidecar pattern, strangler fig, saga pattern, outbox pattern|transactional outbox, circuit breaker,
    bulkhead pattern, retry with backoff|exponential backoff, rate limiting|rate limiter, token bucket, leader
    election, publish-subscribe|pub/sub, message queue, work queue, job queue, dead letter queue, write-ahead
    log|^WAL, copy on write, optimistic locking, pessimistic locking, two-phase commit, connection pool|connection
    pooling, thread pool, object pool, MVC|model-view-controller, MVVM, middleware, blue-green deployment, canary
    release|canary deployment, feature flag, test-driven development|TDD, behaviour-driven development|BDD, pair
    programming, trunk-based development, infrastructure as code, retrieval-augmented generation|^RAG, map
    reduce|MapReduce, memoization, lazy loading, code splitting`,
  concept: `
    authentication|auth|authn, authorization|authorisation|authz, single sign-on|SSO, two-factor authentication|2FA,
    multi-factor authentication|MFA, access control|RBAC, encryption, password reset, session management, session
    token, refresh token, access token, API key, access key, user management, user profile, onboarding, permissions,
    audit log, logging, monitoring, alerting, observability, tracing, metrics, caching|cache, cache invalidation,
    indexing, full-text search, vector search, semantic search, recommendation, ranking, pagination, validation,
    serialization, deserialization, compression, replication, sharding, partitioning, load balancing|load balancer,
    failover, high availability, disaster recovery, backup, data migration, database migration, schema migration,
    concurrency, parallelism, deadlock, race condition, memory leak, garbage collection, latency, throughput,
    scalability, performance, security, privacy, GDPR, compliance, accessibility, localization,
    internationalization|i18n, deployment, continuous integration|^CI|CI/CD, continuous deployment, release
    management, rollback, code review, refactoring, technical debt, unit testing|unit test, integration
    testing|integration test, load testing, end-to-end testing|e2e testing, debugging, profiling, documentation, error
    handling, exception handling, dependency management, versioning, type checking, payment|payments|payment
    processing, billing, invoicing, checkout, subscription, shipping, inventory, notification|notifications, push
    notifications, email delivery, file upload, image processing, video streaming, scheduling, rendering, routing,
    state management, form validation, web scraping, data pipeline, ETL, data warehouse, data lake, analytics,
    dashboard, reporting, A/B testing|AB testing, machine learning, deep learning, neural network, reinforcement
    learning, natural language processing|NLP, computer vision, speech recognition, language model|LLM,
    embeddings|embedding, fine-tuning, prompt engineering, knowledge graph, classification, regression analysis,
    clustering, anomaly detection, forecasting, budget, mortgage, insurance, taxes, retirement, salary, job interview,
    career, homework, university, kindergarten, graduation, scholarship, thesis, marriage, wedding, divorce,
    pregnancy, adoption, parenting, childcare, birthday, anniversary, vacation, holiday, camping, hiking, climbing,
    cycling, swimming, marathon, yoga, meditation, gym, football, basketball, tennis, chess, pottery, painting,
    photography, drawing, knitting, gardening, cooking, baking, guitar, piano, violin, singing, dancing, diet,
    nutrition, vegan|vegan diet, vegetarian, allergy|allergies, migraine, asthma, diabetes, anxiety, depression,
    insomnia, therapy, physiotherapy, vaccination, surgery, dentist, road trip, charity, volunteering`,
  method: `
    gradient descent|stochastic gradient descent|SGD, backpropagation, attention mechanism|self-attention, transformer
    architecture, contrastive learning, transfer learning, cross-validation, bootstrapping, random forest, gradient
    boosting, decision tree, support vector machine|SVM, logistic regression, linear regression, k-means, k-nearest
    neighbours|k-nearest neighbors|kNN, principal component analysis|PCA, t-SNE, UMAP, Monte Carlo, Markov chain Monte
    Carlo|MCMC, Kalman filter, Bayesian inference, maximum likelihood, expectation maximization, ANOVA, t-test,
    meta-analysis, randomized controlled trial|randomised controlled trial|RCT, case study, systematic review, finite
    element method, spectroscopy, mass spectrometry, chromatography, PCR, CRISPR, BM25, TF-IDF, word2vec, ^BERT,
    reciprocal rank fusion|RRF, beam search, knowledge distillation, dropout regularization, batch normalization,
    convolutional neural network|^CNN, recurrent neural network|RNN, LSTM, variational autoencoder|VAE, generative
    adversarial network|^GAN, diffusion model`,
  dataset: `
    ImageNet, MNIST, CIFAR-10, CIFAR-100, MS COCO, SQuAD, GLUE benchmark, SuperGLUE, MMLU, HumanEval, GSM8K, HotpotQA,
    Natural Questions, TriviaQA, MS MARCO, BEIR, WikiText, Common Crawl, LibriSpeech, LoCoMo, LongMemEval, UK Biobank`,
};

/**
 * Nouns by which the type of a thing is recognised, by type and separated by spaces. They stand after the thing's name:
 * `billing service`, `the Atlas project`.
 */
export const CLASS_NOUNS: Readonly<Record<string, string>> = {
  project: 'project',
  pattern: 'pattern',
  library: 'library package framework sdk plugin',
  technology: 'database language protocol platform engine',
  service:
    'service microservice module component worker pipeline gateway frontend backend cluster subsystem scheduler daemon',
  organisation: 'university institute company corporation foundation',
  dataset: 'dataset corpus benchmark',
  method: 'algorithm method',
};

/** Words with which the names of organisations end, separated by white space. */
export const ORGANISATION_ENDINGS = `
  Inc Corp Corporation Ltd LLC GmbH University Institute Laboratory Labs Foundation Hospital College Company Society
  Association`;

/**
 * Common given names, mainly of English and European languages, separated by white space. A name of up to three words
 * that begins with one counts as a person's, unless a class noun or its last word indicates otherwise.
 */
export const GIVEN_NAMES = `
  Aaron Adam Adrian Alan Albert Alex Alexander Alice Alicia Amanda Amy Ana Andrea Andrew Angela Anna Anne Anthony
  Antonio Arthur Barbara Ben Benjamin Beth Bob Brandon Brenda Brian Carla Carlos Carol Caroline Catherine Charles
  Charlotte Chloe Chris Christian Christina Christine Christopher Claire Claudia Daniel David Deborah Dennis Diana
  Diego Dmitri Donald Dorothy Edward Elena Elizabeth Ella Emily Emma Eric Erik Eva Evan Fatima Felix Fernando
  Francesca Francis Frank Gabriel Gary George Gina Giovanni Grace Greg Hannah Harold Harry Heather Helen Henry Hugo
  Ian Igor Ines Ingrid Irene Isaac Isabel Isabella Ivan Jack Jacob James Jane Janet Jason Javier Jean Jeff Jennifer
  Jeremy Jessica Jim Joan Joanna Joe Joel John Jonas Jonathan Jorge Jose Joseph Joshua Juan Judith Julia Julie Karen
  Karl Kate Katherine Kathleen Katie Keith Kelly Kenneth Kevin Kim Klaus Kyle Lars Laura Lauren Lena Leo Leon Liam
  Linda Lisa Lucas Lucia Lucy Luis Luke Maria Marie Mario Mark Martha Martin Mary Matthew Max Megan Melanie Melissa
  Michael Michelle Miguel Mike Mohammed Monica Nancy Natalie Natasha Nathan Nicholas Nicole Nina Noah Nora Oliver
  Olivia Omar Oscar Pablo Patricia Patrick Paul Paula Pedro Peter Philip Priya Rachel Raj Ralph Raymond Rebecca
  Richard Robert Robin Roger Ronald Rosa Ruth Ryan Sam Samantha Samuel Sandra Sara Sarah Scott Sean Sebastian Sergei
  Sharon Simon Sofia Sophia Sophie Stefan Stephanie Stephen Steve Steven Susan Tanya Teresa Theresa Thomas Tim Timothy
  Tina Tom Tony Tyler Valentina Vanessa Vera Veronica Victor Victoria Vincent Walter Wei Wendy William Yuki Zachary
  Zoe`;

/**
 * Adjectives and other words that form no name with a class noun, separated by white space: `the new service` names no
 * service.
 */
export const VAGUE_WORDS = `
  new old main other another same whole different current previous next last first second third external internal
  legacy single separate shared common public private remote local big small large tiny simple complex great good bad
  best better entire real existing own side open source free full own given certain specific particular following
  several many various few any every each underlying overall default popular favourite favorite nice cool interesting
  important entry`;
