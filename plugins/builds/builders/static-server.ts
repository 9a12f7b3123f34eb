/** Where the image of a static site listens. No capability is needed for it. */
export const sitePort = 8080

/** The folder of everything that is put on top of the server's image. */
export const serverFolder = '/busbar'
export const siteFolder = `${serverFolder}/site`
export const configFile = 'nginx.conf'

/** Which program the server's image must have, and how it starts. */
export const serverCommand = [
  'nginx',
  '-e',
  'stderr',
  '-c',
  `${serverFolder}/${configFile}`,
  '-g',
  'daemon off;'
] as const

/** The user `nobody`, by number, which works in every image. */
export const serverUser = '65534:65534'

/**
 * The whole configuration of nginx. It writes to /tmp alone, so that it runs with a read-only root and as
 * nobody. `hasFallback`: a path without an extension that is no file is answered with index.html, as
 * applications that route in the browser need.
 */
export const serverConfig = ({ hasFallback }: { readonly hasFallback: boolean }): string => `
worker_processes 2;
pid /tmp/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }

http {
  include /etc/nginx/mime.types;
  types {
    text/javascript mjs;
    application/manifest+json webmanifest;
  }
  default_type application/octet-stream;
  charset utf-8;
  charset_types text/html text/css text/plain text/xml text/javascript application/javascript application/json application/manifest+json;

  client_body_temp_path /tmp/client_body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;

  access_log /dev/stdout;
  sendfile on;
  tcp_nopush on;
  server_tokens off;
  absolute_redirect off;
  gzip on;
  gzip_vary on;
  gzip_proxied any;
  gzip_types text/css text/plain text/xml text/javascript application/javascript application/json application/manifest+json application/wasm image/svg+xml;

  map $uri $fallback {
    default ${hasFallback ? '/index.html' : '/.none'};
    ~/[^/]*\\.[^/]*$ /.none;
  }

  server {
    listen ${sitePort} default_server;
    root ${siteFolder};
    index index.html;
    error_page 404 /404.html;
    error_page 403 =404 /404.html;
    add_header X-Content-Type-Options nosniff always;
    # A new version is seen at once: browsers ask, and get a 304 where nothing has changed.
    add_header Cache-Control no-cache always;

    location ~ /\\.(?!well-known(?:/|$)) { return 404; }
    location / { try_files $uri $uri.html $uri/ $fallback =404; }
  }
}
`
