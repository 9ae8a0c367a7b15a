// A registry with the packages of a folder: `node registry.js FOLDER` serves demo-VERSION.tgz at
// the port 4873 and prints a line when it does. (Addresses are in npm's cache, so there is one port.)
const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const path = require("path");

const [folder] = process.argv.slice(2);
const address = "http://127.0.0.1:4873/";
const versions = {};
for (const version of ["1.0.0", "2.0.0"]) {
  const name = `demo-${version}.tgz`;
  const digest = crypto.createHash("sha512").update(fs.readFileSync(path.join(folder, name)));
  const dist = { tarball: address + name, integrity: `sha512-${digest.digest("base64")}` };
  versions[version] = { name: "demo", version, dist };
}
const all = JSON.stringify({ name: "demo", "dist-tags": { latest: "2.0.0" }, versions });
http
  .createServer((request, answer) => {
    const name = path.basename(request.url);
    if (name === "demo") answer.end(all);
    else if (/^demo-.*tgz$/.test(name)) answer.end(fs.readFileSync(path.join(folder, name)));
    else answer.writeHead(404).end();
  })
  .listen(4873, "127.0.0.1", () => console.log("ready"));
