// Makes servers listen on 127.0.0.1 only.
const { Server } = require('node:net');

const { listen } = Server.prototype;
Server.prototype.listen = function listenOnLoopback(port, ...rest) {
  const isPort = typeof port === 'number' && typeof rest[0] !== 'string';
  return isPort ? listen.call(this, port, '127.0.0.1', ...rest) : listen.call(this, port, ...rest);
};
