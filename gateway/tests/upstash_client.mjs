console.log("all steps passed")
