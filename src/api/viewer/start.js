// Shows the description of this server's API. It asks no other host for anything: no validator, no fonts, no sign-in.
const page = document.getElementById('api');
SwaggerUIBundle({
  url: page.dataset.description,
  domNode: page,
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // A key that a user enters is not kept when the page is closed.
  persistAuthorization: false,
  validatorUrl: null,
});
